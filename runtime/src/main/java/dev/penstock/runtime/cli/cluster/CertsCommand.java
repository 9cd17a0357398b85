package dev.penstock.runtime.cli.cluster;

import dev.penstock.runtime.certificates.NodeFiles;
import java.io.PrintWriter;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Commands about certificates. */
@Command(
        name = "certs",
        description = {
            "Makes what nodes of a cluster prove themselves with.",
            "The files of a node go to its cluster.tls; ca.key signs, and stays off the nodes."
        },
        subcommands = {CertsInitCommand.class, CertsAddCommand.class},
        footerHeading = "%nExample:%n",
        footer = {
            "  penstock certs init certs --nodes node-1.example.org,10.0.0.2",
            "  penstock certs add certs node-3 --also 10.0.0.3",
        })
public final class CertsCommand {
    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    private boolean help;

    static void print(PrintWriter out, NodeFiles files) {
        out.printf(
                "tls { certificate = \"%s\", key = \"%s\", authority = \"%s\" }%n",
                files.certificate(), files.key(), files.authority());
    }
}
