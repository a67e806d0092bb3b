// Package routing proves by traffic what RoutingPolicies and RateLimitPolicies
// do: a client in one cluster, shards in others, a lookup service, and real
// proxies between them.
package routing
