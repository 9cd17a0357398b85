package dev.penstock.actors.dataplane;

/** How hosts are written in front of a port. */
public final class AddressText {
    private AddressText() {}

    /** A name or address as it is, but {@code [::1]} for {@code ::1}. */
    public static String host(String host) {
        return host.indexOf(':') >= 0 && !host.startsWith("[") ? '[' + host + ']' : host;
    }
}
