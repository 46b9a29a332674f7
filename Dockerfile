# One image for the web server and both workers; docker-compose.yml says which is which.
ARG NODE_IMAGE=node:24.19.0-bookworm-slim
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm
FROM ${NODE_IMAGE} AS frontend
WORKDIR /app/webapp/frontend
COPY webapp/frontend/package.json webapp/frontend/package-lock.json webapp/frontend/.npmrc ./
RUN npm ci
COPY webapp/frontend ./
RUN npm run build

FROM ${PYTHON_IMAGE}
RUN apt-get update \
 && apt-get install --yes --no-install-recommends mininet iproute2 bridge-utils nftables util-linux \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY requirements requirements
RUN pip install --no-cache-dir --requirement requirements/runtime.txt
COPY . .
COPY --from=frontend /app/webapp/frontend/dist webapp/frontend/dist
RUN useradd --system edgeloom && install --directory --owner edgeloom --mode 700 /state /models
ENV LOOM_STATE_DIR=/state PYTHONUNBUFFERED=1
