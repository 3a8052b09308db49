"""Signatures of deliveries, against the public library and the example of the standard."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from app.domain import signature

SECRET, OTHER = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
BODY = '{"event_details":{"data":{"memory":"naïve 日本 \\"q\\" 😀"}}}'.encode()
ID = "0198c0de-0000-7000-8000-000000000001"


def test_example_of_the_standard_is_signed_alike() -> None:
    made = signature.headers(
        [SECRET],
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        datetime.fromtimestamp(1614265330, UTC),
        b'{"test": 2432232314}',
    )
    assert made == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_each_secret_verifies_by_itself() -> None:
    made = signature.headers([SECRET, OTHER], ID, datetime.now(UTC), BODY)
    for secret in (SECRET, OTHER):
        Webhook(secret).verify(BODY, made)
    assert len(made["webhook-signature"].split(" ")) == 2


def test_changed_byte_id_or_timestamp_does_not_verify() -> None:
    made = signature.headers([SECRET], ID, datetime.now(UTC), BODY)
    later = str(int(made["webhook-timestamp"]) + 1)
    for body, headers in (
        (BODY + b" ", made),
        (BODY, made | {"webhook-id": ID[:-1] + "2"}),
        (BODY, made | {"webhook-timestamp": later}),
    ):
        with pytest.raises(WebhookVerificationError):
            Webhook(SECRET).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(OTHER).verify(BODY, made)
