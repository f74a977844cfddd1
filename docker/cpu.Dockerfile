# distbfs for CPUs, on one or many ranks of one node.
#
#     docker build -f docker/cpu.Dockerfile -t distbfs:cpu .
#     docker run --rm -v "$PWD:/data" distbfs:cpu generate kronecker --scale 20 -o graph
#     docker build -f docker/cpu.Dockerfile --target service -t distbfs:service .
FROM python:3.12.11-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY docker/install docker/install
COPY distbfs distbfs
RUN docker/install /opt/distbfs mpich,serve,plot

FROM python:3.12.11-slim-bookworm AS runtime
# C kernels are compiled for the processor that they run on, at first use
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 distbfs \
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
CMD ["serve", "/data/graph", "--socket", "/run/distbfs/socket", "--results", "/data/results"]

FROM runtime AS commands
CMD ["--help"]
