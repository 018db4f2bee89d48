package launcher

// minReadyRequestor is who asks for nodes that are kept in stock; Nodepool's name.
const minReadyRequestor = "NodePool:min-ready"
