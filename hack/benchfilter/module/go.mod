module github.com/portolan-mesh/portolan/hack/benchfilter/module

go 1.26.0

require github.com/proxy-wasm/proxy-wasm-go-sdk v0.0.0-20250212164326-ab4161dcf924

require github.com/tetratelabs/wazero v1.7.2 // indirect
