package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"
)

// settle fills flags that were not given from the environment, else from the
// configuration file.
func settle(flags *pflag.FlagSet, configFile string, getenv func(string) string) error {
	if configFile == "" {
		configFile = getenv("QUARTERMASTER_CONFIG")
	}
	config, err := readConfig(configFile)
	if err != nil {
		return err
	}
	var errs []error
	for name := range config {
		if f := flags.Lookup(name); f == nil || name == "config" || name == "help" {
			errs = append(errs, fmt.Errorf("%s: there is no setting %q", configFile, name))
		}
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "config" || f.Name == "help" {
			return
		}
		env := "QUARTERMASTER_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if v := getenv(env); v != "" {
			errs = append(errs, set(f, env, v))
			return
		}
		if v, ok := config[f.Name]; ok {
			errs = append(errs, set(f, configFile, v...))
		}
	})
	return errors.Join(errs...)
}

func set(f *pflag.Flag, from string, values ...string) error {
	for _, v := range values {
		if err := f.Value.Set(v); err != nil {
			return fmt.Errorf("%s: %s: %w", from, f.Name, err)
		}
	}
	return nil
}

// readConfig reads a file of flags: a value or a list of values each; one
// without a value counts as absent.
func readConfig(path string) (map[string][]string, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	var raw map[string]any
	if err := yaml.Unmarshal(withoutMark(data), &raw); err != nil {
		return nil, fmt.Errorf("%s: %s", path, yaml.FormatError(err, false, false)) // without the source: it may hold a password
	}
	config := make(map[string][]string, len(raw))
	for name, v := range raw {
		if v == nil {
			continue
		}
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, item := range list {
			switch item.(type) {
			case nil, []any, map[string]any:
				return nil, fmt.Errorf("%s: %s: must be a value or a list of values", path, name)
			}
			config[name] = append(config[name], fmt.Sprint(item))
		}
	}
	return config, nil
}
