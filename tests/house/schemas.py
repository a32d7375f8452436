"""Write the published JSON Schemas of the configuration and of the manifest anew: `make schema`."""

import json

from cbdp import config
from cbdp.release import manifest_model


def main() -> None:
    """Write each schema beside the code that reads such files."""
    for path, schema in ((config.SCHEMA, config.schema()), (manifest_model.SCHEMA, manifest_model.schema())):
        path.write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
