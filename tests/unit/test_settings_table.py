"""The README's table of settings says what the code does. `python tests/unit/test_settings_table.py` writes it anew."""

from __future__ import annotations

from pathlib import Path

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from app import config

README = Path(__file__).parents[2] / "README.md"
BEGIN, END = "<!-- settings -->\n", "<!-- /settings -->"


def _default(name: str, field: FieldInfo) -> str:
    if name == "data":
        return "`/var/lib/memoryd` for root, else `~/.local/share/memoryd`"
    value = field.default
    if value is None or isinstance(value, SecretStr):
        return ""
    if value == ():
        return ""
    if isinstance(value, tuple):
        return f"`{','.join(f'{part:g}' for part in value)}`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _table() -> str:
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for name, field in config.Settings.model_fields.items():
        variable = {"database_url": "DATABASE_URL", "redis_url": "REDIS_URL"}.get(name, f"MEMORYD_{name.upper()}")
        rows.append(f"| `{variable}` | {_default(name, field)} | {field.description} |")
    return "\n".join(rows) + "\n"


def test_readme_names_every_setting_with_its_default() -> None:
    text = README.read_text(encoding="utf-8")
    assert text[text.index(BEGIN) + len(BEGIN) : text.index(END)] == _table()


if __name__ == "__main__":
    text = README.read_text(encoding="utf-8")
    README.write_text(text[: text.index(BEGIN) + len(BEGIN)] + _table() + text[text.index(END) :], encoding="utf-8")
