package configs

// fakeDriver decodes what is special about a fake provider.
func fakeDriver(f *FakeDriver) decodeFunc {
	return func(v value) {
		v.decode("fake", fields{
			"dir":           text(&f.Dir),
			"max-instances": number(&f.MaxInstances, 0, unlimited),
			"boot-delay":    seconds(&f.BootDelay, 0),
			"upload-delay":  seconds(&f.UploadDelay, 0),
			"delete-delay":  seconds(&f.DeleteDelay, 0),
			"fail-every":    failEvery(&f.FailEvery),
		})
	}
}

func failEvery(out *map[string]int) decodeFunc {
	operations := []string{"upload", "create", "wait", "delete-node", "delete-image", "list"}
	return func(v value) {
		counts := make([]int, len(operations))
		keys := fields{}
		for i, name := range operations {
			keys[name] = number(&counts[i], 1, unlimited)
		}
		v.decode("fail-every", keys)
		*out = map[string]int{}
		for i, name := range operations {
			if counts[i] > 0 {
				(*out)[name] = counts[i]
			}
		}
	}
}
