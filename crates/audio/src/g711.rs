//! ITU-T G.711: the two companding laws of telephony, as tables made at compile time.

/// Linear values of the 256 mu-law codes, on the 16-bit scale.
pub(crate) const MU_LAW: [i16; 256] = {
    let mut table = [0; 256];
    let mut code: i16 = 0;
    while code < 256 {
        table[code as usize] = mu_law(code);
        code += 1;
    }
    table
};

/// Linear values of the 256 A-law codes, on the 16-bit scale.
pub(crate) const A_LAW: [i16; 256] = {
    let mut table = [0; 256];
    let mut code: i16 = 0;
    while code < 256 {
        table[code as usize] = a_law(code);
        code += 1;
    }
    table
};

/// All bits are sent inverted; the segment scales a mantissa that carries a bias of 33 (132 on our scale).
const fn mu_law(code: i16) -> i16 {
    let code = !code & 0xFF;
    let magnitude = ((((code & 0x0F) << 3) + 132) << ((code >> 4) & 7)) - 132;
    if code & 0x80 == 0 { magnitude } else { -magnitude }
}

/// Every other bit is sent inverted; the lowest two segments share one step size.
const fn a_law(code: i16) -> i16 {
    let code = code ^ 0x55;
    let mantissa = (code & 0x0F) << 4;
    let magnitude = match (code >> 4) & 7 {
        0 => mantissa + 8,
        segment => (mantissa + 0x108) << (segment - 1),
    };
    if code & 0x80 == 0 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from the tables of G.711 (13- and 14-bit there, shifted to 16 bits here).
    #[test]
    fn known_codes() {
        assert_eq!(MU_LAW[0xFF], 0);
        assert_eq!(MU_LAW[0x7F], 0);
        assert_eq!(MU_LAW[0x80], 32_124);
        assert_eq!(MU_LAW[0x00], -32_124);
        assert_eq!(MU_LAW[0xFE], 8);
        assert_eq!(A_LAW[0xD5], 8);
        assert_eq!(A_LAW[0x55], -8);
        assert_eq!(A_LAW[0xAA], 32_256);
        assert_eq!(A_LAW[0x2A], -32_256);
    }

    #[test]
    fn both_laws_are_symmetric() {
        for code in 0..128 {
            assert_eq!(i32::from(MU_LAW[code]), -i32::from(MU_LAW[code | 0x80]));
            assert_eq!(i32::from(A_LAW[code]), -i32::from(A_LAW[code | 0x80]));
        }
    }
}
