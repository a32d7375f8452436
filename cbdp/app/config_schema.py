"""Write `config.schema.json` anew: `python -m cbdp.app.config_schema`."""

import json

from cbdp.config import SCHEMA, schema

SCHEMA.write_text(json.dumps(schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
