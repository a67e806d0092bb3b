package mesh

import "strings"

// filterPrefix begins the name of every EnvoyFilter of a routing policy.
const filterPrefix = "routing-"

// FilterName is the name of a routing policy's EnvoyFilter for a service: valid
// whatever the policy is called, and no other policy's or service's.
func FilterName(policy Ref, key ServiceKey) string {
	return FilterStem(policy) + Hash(policy.String()+"\n"+key.String())
}

// FilterStem is what the names of a policy's EnvoyFilters have before the hash.
// Policies whose names begin alike share it.
func FilterStem(policy Ref) string {
	const readable = 40
	name := policy.Name
	if len(name) > readable {
		name = strings.TrimRight(name[:readable], "-.")
	}
	return filterPrefix + name + "-"
}

// StemOf is the FilterStem of the name of an EnvoyFilter, whoever made it.
func StemOf(name string) string {
	const hash = 16
	return name[:max(0, len(name)-hash)]
}
