package model

// Newer is something that today's clients send, or today's services answer, and that the model of 2022 does
// not have. It is accepted by name, here and nowhere else.
type Newer struct {
	Service string
	// Shape has got Member, of the type that Ref names.
	Shape, Member string
	Ref           Ref
	// Query is a parameter of each request's URL, without meaning.
	Query string
	// Since is when it came, and what it is for.
	Since string
}

// NewerThanModel lists all of it.
var NewerThanModel = []Newer{
	{
		Service: "ec2", Shape: "RegisterImageRequest", Member: "TagSpecifications",
		Ref: Ref{Shape: "TagSpecificationList", LocationName: "TagSpecification"}, Since: "2023-12: an image has its tags from its first moment",
	},
	{Service: "s3", Query: "x-id", Since: "2023: names the operation in the URL, for logs"},
	{Service: "ebs", Query: "x-id", Since: "2023: names the operation in the URL, for logs"},
}

// addNewer puts into a model what it lacks. What it has by itself, as that of a newer Debian may, stays.
func (s *Service) addNewer() {
	for _, n := range NewerThanModel {
		if n.Service != s.Name {
			continue
		}
		if n.Query != "" {
			s.queries = append(s.queries, n.Query)
			continue
		}
		if _, there := s.Shapes[n.Shape].Members[n.Member]; !there {
			s.Shapes[n.Shape].Members[n.Member] = n.Ref
		}
	}
}
