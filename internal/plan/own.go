// The device's own model in the user's cache folder, which takes precedence over the one compiled in for its kind:
// `spmmrun bench fit` writes one with costs, and tuning adds to it how far off predictions were.

package plan

import (
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/cache"
	"github.com/spmmrun/spmm/internal/plan/model"
)

// ModelFile is the name of the file of a device's own model in the cache folder.
func ModelFile(i backend.Info) string { return "model-" + deviceKey(i) + ".json" }

// model returns what predictions know of the device besides its rates.
func (d *Device) model() *model.DeviceModel {
	d.measure.Lock()
	defer d.measure.Unlock()
	if d.own == nil {
		d.own = d.overKind(readModel(d.Caps().Code, d.Info()))
	}
	return d.own
}

// overKind returns a model over that of the device's kind; that of its kind for nil.
func (d *Device) overKind(m *model.DeviceModel) *model.DeviceModel {
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

// learn adds tuning's measurements to the device's own model, with the candidates' predictions.
func (d *Device) learn(cs []*candidate, times []measured) {
	predictions := d.model()
	d.measure.Lock()
	defer d.measure.Unlock()
	i := d.Info()
	m := readModel(d.Caps().Code, i)
	if m == nil {
		m = &model.DeviceModel{Version: model.Version, Code: d.Caps().Code.String(), Measured: model.Source{
			Device: i.Name, Driver: i.Driver, Date: time.Now().UTC().Format(time.DateOnly), Command: "spmmrun --tune",
		}}
	}
	for _, t := range times {
		for _, c := range cs {
			if c.kernel.Name == t.Format && c.variant.Name == t.Variant && c.cost > 0 && c.cost != unlikely {
				uncorrected := float64(c.cost) / predictions.Correction(t.Format, t.Variant).Factor()
				m.Learn(t.Format, t.Variant, float64(t.Time)/uncorrected)
			}
		}
	}
	_ = saveJSON(ModelFile(i), m) // what cannot be remembered is learnt again
	d.own = d.overKind(m)
}
