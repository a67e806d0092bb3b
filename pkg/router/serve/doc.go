// Package serve runs the lookup service: it reads tables from a folder and from
// ShardMaps, takes them into use while it answers, and ends without a request
// that fails. What tables say is decided in pkg/router.
package serve
