package web

import "testing"

func TestNegotiate(t *testing.T) {
	for _, test := range []struct {
		accept []string
		want   string
	}{
		{nil, typeHTML},
		{[]string{""}, typeHTML},
		{[]string{"*/*"}, typeHTML},
		{[]string{"*"}, typeHTML},
		{[]string{"text/plain"}, typeText},
		{[]string{"application/json"}, typeJSON},
		{[]string{"Application/JSON"}, typeJSON},
		{[]string{"application/json;charset=utf-8"}, typeJSON},
		{[]string{"application/*"}, typeJSON},
		{[]string{"application/json, */*"}, typeJSON},                                     // as exactly as possible
		{[]string{"application/json, text/plain, */*"}, typeText},                         // axios; so does Nodepool
		{[]string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*"}, typeHTML}, // a browser
		{[]string{"text/plain;q=0.5, application/json;q=0.9"}, typeJSON},                  //
		{[]string{"text/*;q=0.5, */*"}, typeJSON},                                         // the exact range counts
		{[]string{"text/html;q=0, */*;q=0.1"}, typeText},                                  //
		{[]string{"application/xml", "application/json"}, typeJSON},                       // two header lines
		{[]string{"nonsense, application/json;q=2, text/plain;q=x, text/html"}, typeHTML}, // bad items are passed over
		{[]string{"application/xml"}, ""},                                                 //
		{[]string{"image/*;q=0.8"}, ""},                                                   //
		{[]string{"*/*;q=0"}, ""},                                                         //
		{[]string{"text/html;q=0, text/plain;q=0.0, application/json; q=0.000"}, ""},      //
		{[]string{"text*"}, typeHTML},                                                     /* no media range: as if nothing was said */
	} {
		if got := negotiate(test.accept, typeHTML, typeText, typeJSON); got != test.want {
			t.Errorf("negotiate(%q) = %q, want %q", test.accept, got, test.want)
		}
	}
}
