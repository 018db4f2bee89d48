package node

import (
	"fmt"
	"strconv"
	"strings"

	"poolkeeper/zkmodel"
)

// Fill writes what a request says into a format of dynamic-instance-properties:
// {request.NAME} is a part of the request, {{ and }} are braces. The names were
// checked when the configuration was read.
func Fill(format string, r *zkmodel.Request) string {
	values := map[string]string{
		"id": r.ID, "labels": pythonList(r.NodeTypes), "requestor": r.Requestor,
		"requestor_data": r.RequestorData.Text(), "relative_priority": strconv.Itoa(r.RelativePriority),
		"event_id": r.EventID, "tenant_name": r.TenantName,
		"created_time": strconv.FormatFloat(float64(r.CreatedTime), 'f', -1, 64),
	}
	pairs := []string{"{{", "{", "}}", "}"}
	for name, value := range values {
		pairs = append(pairs, "{request."+name+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(format)
}

// pythonList is a list of strings as Python prints it, which is what Nodepool
// fills in.
func pythonList(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = fmt.Sprintf("'%s'", s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
