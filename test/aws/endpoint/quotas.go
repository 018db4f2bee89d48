package endpoint

import (
	"maps"
	"slices"
	"strings"
)

var quotaHandlers = map[string]handler{
	"ListServiceQuotas": (*call).listQuotas, "GetServiceQuota": (*call).getQuota,
	"ListAWSDefaultServiceQuotas": (*call).listQuotas, "GetAWSDefaultServiceQuota": (*call).getQuota,
}

// quotaNames are what the codes mean.
var quotaNames = map[string]string{
	"L-1216C47A": "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", "L-34B43A08": "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests",
	"L-417A185B": "Running On-Demand P instances", "L-7212CCBC": "All P4, P3 and P2 Spot Instance Requests", "L-A8448DC5": "Running Dedicated mac1 Hosts",
	"L-7A658B76": "Storage for General Purpose SSD (gp3) volumes, in TiB", "L-D18FCD1D": "Storage for General Purpose SSD (gp2) volumes, in TiB",
}

func (c *call) quota(service, code string, value float64) Doc {
	return Doc{
		"ServiceCode": service, "ServiceName": strings.ToUpper(service), "QuotaCode": code, "QuotaName": quotaNames[code], "Value": value, "Unit": "None",
		"Adjustable": true, "GlobalQuota": false, "QuotaArn": "arn:aws:servicequotas:" + c.e.Region + ":" + c.e.Account + ":" + service + "/" + code,
	}
}

func (c *call) listQuotas() (Doc, error) {
	var docs []Doc
	for _, name := range slices.Sorted(maps.Keys(c.w.quotas)) {
		if service, code, _ := strings.Cut(name, "/"); service == c.in.Str("ServiceCode") {
			docs = append(docs, c.quota(service, code, c.w.quotas[name]))
		}
	}
	if len(docs) == 0 {
		return nil, fault("NoSuchResourceException", "The service %s has no quotas", c.in.Str("ServiceCode"))
	}
	return c.page("Quotas", docs)
}

func (c *call) getQuota() (Doc, error) {
	service, code := c.in.Str("ServiceCode"), c.in.Str("QuotaCode")
	value, there := c.w.quotas[service+"/"+code]
	if !there {
		return nil, fault("NoSuchResourceException", "The quota %s of %s does not exist", code, service)
	}
	return Doc{"Quota": c.quota(service, code, value)}, nil
}
