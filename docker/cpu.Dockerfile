# distbfs for CPUs, on one or many ranks of one node.
#
#     docker build -f docker/cpu.Dockerfile -t distbfs:cpu .
#     docker run --rm -v "$PWD:/data" distbfs:cpu generate kronecker --scale 20 -o graph
#     docker build -f docker/cpu.Dockerfile --target service -t distbfs:service .
FROM python:3.12.11-slim-bookworm@sha256:519591d6871b7bc437060736b9f7456b8731f1499a57e22e6c285135ae657bf7 AS build
# C kernels are compiled here, for any processor; at run time there is no compiler
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY docker/install docker/install
COPY docker/build.lock docker/build.lock
COPY docker/cpu.lock docker/cpu.lock
COPY distbfs distbfs
RUN docker/install /opt/distbfs cpu

FROM python:3.12.11-slim-bookworm@sha256:519591d6871b7bc437060736b9f7456b8731f1499a57e22e6c285135ae657bf7 AS runtime
RUN useradd --create-home --uid 10001 distbfs \
    && install -d -o distbfs -g distbfs /data /run/distbfs
COPY --from=build /opt/distbfs /opt/distbfs
ENV PATH=/opt/distbfs/bin:$PATH
USER 10001
WORKDIR /data
ENTRYPOINT ["distbfs"]

FROM runtime AS service
HEALTHCHECK --interval=30s --timeout=10s --start-period=120s \
    CMD ["distbfs", "query", "/run/distbfs/socket", "health"]
STOPSIGNAL SIGTERM
CMD ["serve", "/data/graph", "--socket", "/run/distbfs/socket"]

FROM runtime AS commands
CMD ["--help"]
