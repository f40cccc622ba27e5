// Residues modulo small coprime numbers: see package rfx (formats), residues.go, whose Moduli these are.

const MOST_MODULI = 16u;

fn modulus(i: u32) -> u32 {
    var moduli = array<u32, 16>(256u, 255u, 253u, 251u, 247u, 241u, 239u, 233u, 229u, 227u, 223u, 217u, 211u, 199u, 197u,
        193u);
    return moduli[i];
}
