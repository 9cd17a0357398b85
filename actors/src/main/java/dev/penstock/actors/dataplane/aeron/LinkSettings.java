package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.FrameFaults;
import dev.penstock.actors.dataplane.Transport;
import java.util.Optional;
import javax.crypto.SecretKey;

/**
 * How frames travel and what protects them. Over UDP every frame has a CRC-32C, or with a key a
 * seal in its place.
 *
 * @param transport over shared memory, UDP, or each where it fits
 * @param udp used unless the transport is IPC
 * @param crc whether frames in shared memory carry a CRC-32C, too
 * @param key of the run, for frames over UDP; without one they travel in the clear
 * @param faults what harms frames on purpose
 */
public record LinkSettings(
        Transport transport,
        UdpSettings udp,
        boolean crc,
        Optional<SecretKey> key,
        FrameFaults faults) {

    /** Shared memory without checksums. */
    public static final LinkSettings IPC =
            new LinkSettings(
                    Transport.IPC,
                    UdpSettings.loopback(),
                    false,
                    Optional.empty(),
                    FrameFaults.NONE);

    public LinkSettings withTransport(Transport choice) {
        return new LinkSettings(choice, udp, crc, key, faults);
    }

    public LinkSettings withUdp(UdpSettings settings) {
        return new LinkSettings(transport, settings, crc, key, faults);
    }

    public LinkSettings withCrc(boolean on) {
        return new LinkSettings(transport, udp, on, key, faults);
    }

    public LinkSettings withKey(SecretKey secret) {
        return new LinkSettings(transport, udp, crc, Optional.of(secret), faults);
    }

    public LinkSettings withFaults(FrameFaults harm) {
        return new LinkSettings(transport, udp, crc, key, harm);
    }

    /** Whether frames in shared memory are checked. */
    boolean checksIpc() {
        return crc || !faults.equals(FrameFaults.NONE);
    }
}
