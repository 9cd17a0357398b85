package dev.penstock.runtime.certificates;

import java.net.InetAddress;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * Names that a certificate vouches for: host names and addresses, distinguished without a lookup.
 */
final class HostName {
    private static final String LABEL = "[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?";
    private static final Pattern NAME = Pattern.compile(LABEL + "(\\." + LABEL + ")*");
    private static final Pattern ONLY_DIGITS = Pattern.compile("[0-9.]+");
    private static final List<String> LOOPBACK = List.of("localhost", "127.0.0.1", "::1");

    private HostName() {}

    /** Returns the address that a text represents; empty for a name. */
    static Optional<InetAddress> address(String text) {
        try {
            return Optional.of(InetAddress.ofLiteral(text));
        } catch (IllegalArgumentException e) {
            return Optional.empty();
        }
    }

    static boolean isValid(String text) {
        return address(text).isPresent()
                || (text.length() <= 253
                        && NAME.matcher(text).matches()
                        && !ONLY_DIGITS.matcher(text).matches());
    }

    /**
     * Returns the names as keytool expects them; a node with one name of the loopback gets all of
     * them.
     */
    static String alternativeNames(List<String> names) {
        Set<String> all = new LinkedHashSet<>();
        for (String name : names) {
            if (isLoopback(name)) {
                all.addAll(LOOPBACK);
            }
            all.add(name.toLowerCase(Locale.ROOT)); // 127.0.0.2 is a loopback address as well
        }
        return "san="
                + String.join(
                        ",",
                        all.stream()
                                .map(name -> (address(name).isPresent() ? "ip:" : "dns:") + name)
                                .toList());
    }

    private static boolean isLoopback(String name) {
        return LOOPBACK.contains(name.toLowerCase(Locale.ROOT))
                || address(name).map(InetAddress::isLoopbackAddress).orElse(false);
    }

    /**
     * Returns whether a name of a certificate covers a host; its first label may be a star (RFC
     * 6125).
     */
    static boolean covers(String certified, String host) {
        Optional<InetAddress> address = address(host);
        if (address.isPresent()) {
            return address(certified).equals(address);
        }
        if (certified.startsWith("*.")) {
            int dot = host.indexOf('.');
            return dot > 0 && certified.substring(1).equalsIgnoreCase(host.substring(dot));
        }
        return certified.equalsIgnoreCase(host);
    }
}
