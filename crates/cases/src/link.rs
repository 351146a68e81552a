//! The way that this machine's packets take to a host, as Linux tells it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

/// The network interface that leads to a host.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Its name, e.g. `eth0`.
    pub name: String,
    /// Its speed, Mbit/s, where it tells one: wireless, virtual and loopback interfaces do not.
    pub mbit_s: Option<f64>,
    /// Whether the host is this machine.
    pub local: bool,
}

/// Finds the way; nothing where the name cannot be looked up or the system does not tell.
pub(crate) async fn find(host: &str, port: u16) -> Option<Link> {
    let mut addresses = tokio::net::lookup_host((host, port)).await.ok()?;
    let to = addresses.next()?;
    if to.ip().is_loopback() || own_address_towards(to) == Some(to.ip()) {
        return Some(Link { name: "lo".into(), mbit_s: None, local: true });
    }
    let routes = std::fs::read_to_string("/proc/net/route").ok()?;
    let name = match to.ip() {
        IpAddr::V4(ip) => interface(&routes, ip)?,
        // IPv6 routes are written elsewhere; where there is a default route for IPv4, it leads the same way.
        IpAddr::V6(_) => interface(&routes, Ipv4Addr::UNSPECIFIED)?,
    };
    let told = std::fs::read_to_string(format!("/sys/class/net/{name}/speed")).ok();
    let mbit_s = told.and_then(|text| text.trim().parse::<f64>().ok()).filter(|speed| *speed > 0.0);
    Some(Link { name, mbit_s, local: false })
}

/// The address that packets to a host would carry as their sender's. Nothing is sent.
fn own_address_towards(to: SocketAddr) -> Option<IpAddr> {
    let any: SocketAddr = if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(to).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// The interface of the route with the longest mask that fits, from the text of `/proc/net/route`.
fn interface(routes: &str, to: Ipv4Addr) -> Option<String> {
    // The file writes addresses as hexadecimal numbers of the machine's own byte order.
    let to = u32::from_ne_bytes(to.octets());
    let fitting = routes.lines().skip(1).filter_map(|line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let [name, destination, _, _, _, _, _, mask, ..] = cells.as_slice() else { return None };
        let destination = u32::from_str_radix(destination, 16).ok()?;
        let mask = u32::from_str_radix(mask, 16).ok()?;
        (to & mask == destination).then(|| (mask.count_ones(), (*name).to_owned()))
    });
    fitting.max_by_key(|(bits, _)| *bits).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn the_longest_mask_wins() {
        let routes = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
                      eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                      eth1\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n";
        assert_eq!(interface(routes, Ipv4Addr::new(10, 1, 2, 3)).as_deref(), Some("eth1"));
        assert_eq!(interface(routes, Ipv4Addr::new(192, 168, 1, 9)).as_deref(), Some("eth0"));
        assert_eq!(interface("", Ipv4Addr::LOCALHOST), None);
    }

    #[tokio::test]
    async fn this_machine_is_no_link() {
        let link = find("127.0.0.1", 9000).await.unwrap();
        assert!(link.local && link.mbit_s.is_none());
    }
}
