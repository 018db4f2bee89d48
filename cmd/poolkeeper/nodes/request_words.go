package nodes

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"poolkeeper/configs"
)

// wordsWait is how long a launcher may take to say why a request waits.
const wordsWait = 500 * time.Millisecond

// launcherWords is why a request waits, in the words of the launcher of this host; ""
// when there is none here, or it says nothing.
func launcherWords(ctx context.Context, cfg *configs.Config, id string) string {
	host := cfg.WebApp.ListenAddress
	if addr, err := netip.ParseAddr(host); err != nil || addr.IsUnspecified() {
		host = "127.0.0.1"
	}
	if cfg.WebApp.Port == 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, wordsWait)
	defer cancel()
	url := "http://" + net.JoinHostPort(host, strconv.Itoa(cfg.WebApp.Port)) + "/request-list"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return ""
	}
	r.Header.Set("Accept", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return ""
	}
	defer func() { _ = answer.Body.Close() }()
	var rows []struct {
		ID     string `json:"id"`
		Reason string `json:"reason"`
	}
	if answer.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(answer.Body, 16<<20)).Decode(&rows) != nil {
		return ""
	}
	for _, row := range rows {
		if row.ID == id {
			return row.Reason
		}
	}
	return ""
}
