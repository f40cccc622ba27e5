// The device's own model in the user's cache folder, which takes precedence over the one compiled in for its kind:
// `spmmrun bench fit` writes one with costs, and tuning adds to it how far off predictions were.

package choose

import (
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/cache"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/model"
)

// ModelFile is the name of the file of a device's own model in the cache folder.
func ModelFile(i backend.Info) string { return "model-" + device.Key(i) + ".json" }

// ModelOf returns what predictions know of the device besides its rates.
func ModelOf(d *device.Device) *model.DeviceModel {
	d.Speed.Lock()
	defer d.Speed.Unlock()
	if d.Speed.Model == nil {
		d.Speed.Model = overKind(d, readModel(d.Caps().Code, d.Info()))
	}
	return d.Speed.Model
}

// overKind returns a model over that of the device's kind; that of its kind for nil.
func overKind(d *device.Device, m *model.DeviceModel) *model.DeviceModel {
	kind := model.For(d.Caps().Code, d.Info().Name)
	if m == nil {
		return kind
	}
	return m.Over(kind)
}

// readModel returns nil if there is none of this version for such a device.
func readModel(code backend.Code, i backend.Info) *model.DeviceModel {
	const limit = 1 << 20
	text, err := cache.Read(ModelFile(i), limit)
	if err != nil {
		return nil
	}
	m, err := model.Parse(text)
	if err != nil {
		_ = cache.Refuse(ModelFile(i), err)
		return nil
	}
	if m.Code != code.String() {
		return nil
	}
	return m
}

// learn adds what tuning measured to the device's own model, with the predictions for the candidates.
func learn(d *device.Device, cs []*Candidate, times []Measured) {
	predictions := ModelOf(d)
	d.Speed.Lock()
	defer d.Speed.Unlock()
	i := d.Info()
	m := readModel(d.Caps().Code, i)
	if m == nil {
		m = &model.DeviceModel{Version: model.Version, Code: d.Caps().Code.String(), Measured: model.Source{
			Device: i.Name, Driver: i.Driver, Date: time.Now().UTC().Format(time.DateOnly), Command: "spmmrun --tune",
		}}
	}
	for _, t := range times {
		for _, c := range cs {
			if c.Kernel.Name == t.Format && c.Variant.Name == t.Variant && c.cost > 0 && c.cost != Unlikely {
				uncorrected := float64(c.cost) / predictions.Correction(t.Format, t.Variant).Factor()
				m.Learn(t.Format, t.Variant, float64(t.Time)/uncorrected)
			}
		}
	}
	_ = device.SaveJSON(ModelFile(i), m) // what cannot be remembered is learnt again
	d.Speed.Model = overKind(d, m)
}
