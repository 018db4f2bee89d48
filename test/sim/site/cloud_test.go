package site

import (
	"context"
	"testing"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
)

// account is a cloud as the world sees it; all processes of a site share it.
type account interface {
	providers.Provider
	// Machines are those that are there, whoever made them, whatever lists tell.
	Machines() []providers.NodeInfo
}

// table is an account of providers/fake.
type table struct{ *fake.Provider }

func openTable(t *testing.T, section configs.Provider) table {
	t.Helper()
	p, err := fake.New(section, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	return table{p}
}

// Machines implements account.
func (c table) Machines() []providers.NodeInfo {
	list, _ := c.ListNodes(context.Background())
	return list
}
