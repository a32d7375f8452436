"""Write `config.schema.json` anew: `python -m cbdp.app.config_schema`."""

import json

from cbdp.config import SCHEMA, schema


def main() -> None:
    """Write the JSON Schema of the configuration beside the code that reads it."""
    SCHEMA.write_text(json.dumps(schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
