// Package filters sends requests through one real Envoy that has the filters of a
// plan: what each form that is rendered does to them.
package filters
