# distbfs for NVIDIA GPUs: NVRTC, the CUDA runtime and NCCL come with the Python packages,
# the driver from the host (NVIDIA container toolkit).
#
#     docker build -f docker/cuda.Dockerfile -t distbfs:cuda .
#     docker run --rm --gpus all -v "$PWD:/data" distbfs:cuda graph500 --scale 24
#     docker build -f docker/cuda.Dockerfile --target service -t distbfs:cuda-service .
FROM python:3.12.11-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY docker/install docker/install
COPY distbfs distbfs
RUN docker/install /opt/distbfs mpich,cuda13,serve,plot

FROM python:3.12.11-slim-bookworm AS runtime
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 distbfs \
    && install -d -o distbfs -g distbfs /data /run/distbfs
COPY --from=build /opt/distbfs /opt/distbfs
ENV PATH=/opt/distbfs/bin:$PATH \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
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
