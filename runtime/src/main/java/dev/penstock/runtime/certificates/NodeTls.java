package dev.penstock.runtime.certificates;

import akka.actor.ActorSystem;
import akka.remote.artery.tcp.SSLEngineProvider;
import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import java.nio.file.Path;
import java.util.Map;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSession;
import scala.Option;

/**
 * TLS between nodes (RFC 8446): both the node that opens a connection and the one that accepts it
 * show a certificate of a common authority, and the one that opens it checks that the other's
 * certificate is for the intended host. Since nodes open connections to each other in both
 * directions, each is checked by name before it receives anything.
 *
 * <p>Akka's own providers either read key stores with passwords in the configuration, or read PEM
 * but require the same name in all certificates instead of checking hosts.
 */
public final class NodeTls implements SSLEngineProvider {
    private static final String SECTION = "penstock.tls.";
    private static final String CERTIFICATE = SECTION + "certificate";
    private static final String KEY = SECTION + "key";
    private static final String AUTHORITY = SECTION + "authority";
    private static final String CHECKS_HOSTS = SECTION + "checks-hosts";

    private final SSLContext context;
    private final boolean checksHosts;

    /** Called by Akka; the files are named in the system's configuration, see {@link #settings}. */
    public NodeTls(ActorSystem system) {
        Config config = system.settings().config();
        NodeFiles files = filesOf(config);
        this.checksHosts = config.getBoolean(CHECKS_HOSTS);
        this.context =
                (checksHosts ? NodeCertificate.read(files) : NodeCertificate.readLocal(files))
                        .context();
    }

    NodeTls(NodeFiles files) {
        this.context = NodeCertificate.read(files).context();
        this.checksHosts = true;
    }

    /** Returns the settings of an actor system whose remote messages all use TLS. */
    public static Config settings(NodeFiles files) {
        return settings(files, true);
    }

    /** The same for processes that share one {@link LocalCertificate}, which names no host. */
    public static Config localSettings(NodeFiles files) {
        return settings(files, false);
    }

    private static Config settings(NodeFiles files, boolean checksHosts) {
        return ConfigFactory.parseMap(
                Map.of(
                        "akka.remote.artery.transport",
                        "tls-tcp",
                        "akka.remote.artery.ssl.ssl-engine-provider",
                        NodeTls.class.getName(),
                        CERTIFICATE,
                        files.certificate().toAbsolutePath().toString(),
                        KEY,
                        files.key().toAbsolutePath().toString(),
                        AUTHORITY,
                        files.authority().toAbsolutePath().toString(),
                        CHECKS_HOSTS,
                        checksHosts));
    }

    private static NodeFiles filesOf(Config config) {
        return new NodeFiles(
                Path.of(config.getString(CERTIFICATE)),
                Path.of(config.getString(KEY)),
                Path.of(config.getString(AUTHORITY)));
    }

    @Override
    public SSLEngine createServerSSLEngine(String host, int port) {
        SSLEngine engine = context.createSSLEngine(host, port);
        engine.setUseClientMode(false);
        engine.setNeedClientAuth(true);
        return engine;
    }

    @Override
    public SSLEngine createClientSSLEngine(String host, int port) {
        SSLEngine engine = context.createSSLEngine(host, port);
        engine.setUseClientMode(true);
        if (checksHosts) {
            SSLParameters parameters = engine.getSSLParameters();
            parameters.setEndpointIdentificationAlgorithm("HTTPS");
            engine.setSSLParameters(parameters);
        }
        return engine;
    }

    /** Accepts every session: everything was checked in the handshake. */
    @Override
    public Option<Throwable> verifyClientSession(String host, SSLSession session) {
        return Option.empty();
    }

    /** Accepts every session: everything was checked in the handshake. */
    @Override
    public Option<Throwable> verifyServerSession(String host, SSLSession session) {
        return Option.empty();
    }
}
