// Package mesh is the vocabulary of Portolan: the names, the rows that an
// observed object becomes, the objects that a plan yields and what it has to
// say of its input. It holds values and no behaviour beyond naming and order.
package mesh
