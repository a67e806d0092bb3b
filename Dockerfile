# The manager and the command line in one static program, without a shell and
# not as root. docker buildx build --platform linux/amd64,linux/arm64 .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH VERSION=""
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY api api
COPY cmd cmd
COPY config/crd config/crd
COPY controllers controllers
COPY pkg pkg
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /portolan ./cmd/portolan

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /portolan /portolan
USER 65532:65532
ENTRYPOINT ["/portolan"]
CMD ["manager"]
