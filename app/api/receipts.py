"""Receipts of erases, as the answers of what deletes an owner or a project show them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field

from app.api import answers


class Receipt(BaseModel):
    """What an erase has taken. It names nobody."""

    id: UUID = Field(description="Of this erase.")
    erased_at: datetime = Field(description="When it was done.")
    erased: dict[str, int] = Field(description="Rows that went, by table; tables without any are left out.")
    remaining: dict[str, int] = Field(description="Rows that a second look found afterwards, the same way.")
    verified: bool = Field(description="Whether the second look found nothing.")
    not_covered: list[str] = Field(description="What no database statement reaches.")


class OwnerErased(answers.DeleteAccepted):
    """Every trace is gone; the receipt says of what."""

    receipt: Receipt = Field(description="What was erased.")


class ProjectErased(answers.Done):
    """The project, or the organization, is gone with everything in it; the receipt says of what."""

    receipt: Receipt = Field(description="What was erased.")
