// Package failover holds the tests that send requests through real proxies while
// clusters die.
package failover
