package dev.penstock.runtime.serve;

/**
 * What the HTTP library allows of a client. It reads these properties once per process, before the
 * first server: who starts it with others keeps them.
 */
final class HttpLimits {
    private HttpLimits() {}

    static void apply() {
        limit("sun.net.httpserver.maxReqTime", "15"); // seconds for a request, with its body
        limit("sun.net.httpserver.clockTick", "1000"); // ms between looks at who is too late
        limit("sun.net.httpserver.maxReqHeaders", "100");
        limit("sun.net.httpserver.maxReqHeaderSize", "65536");
        limit("sun.net.httpserver.nodelay", "true"); // tokens are small and many
        limit("jdk.httpserver.maxConnections", "8192");
    }

    private static void limit(String property, String value) {
        if (System.getProperty(property) == null) {
            System.setProperty(property, value);
        }
    }
}
