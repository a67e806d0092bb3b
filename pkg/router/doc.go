// Package router decides which shard has a key. It reads tables, in files or
// in ShardMaps, says what is wrong with them, puts the parts of a table together
// and answers lookups. It is pure: pkg/router/serve reads files, watches
// ShardMaps and answers requests.
package router
