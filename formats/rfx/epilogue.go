// What may be done to an output after alpha and beta.

package rfx

// Biased returns RNE32(y + bias): the exact sum, rounded once; zero is +0. Operands that are not finite decide as in a
// sum of products.
func Biased(y, bias float32) float32 { return Scale(1, y, 1, bias) }

// ReLU returns y where it is above 0 or NaN, else +0.
func ReLU(y float32) float32 {
	if y <= 0 {
		return 0
	}
	return y
}
