package dev.penstock.runtime.cli.cluster;

import dev.penstock.runtime.certificates.NodeFiles;
import dev.penstock.runtime.cli.command.CommandWithHelp;
import java.io.PrintWriter;
import picocli.CommandLine.Command;

/** Commands about certificates. */
@Command(
        name = "certs",
        description = {
            "Makes what nodes of a cluster prove themselves with.",
            "The files of a node go to its cluster.tls; ca.key signs, and stays off the nodes."
        },
        subcommands = {CertsInitCommand.class, CertsAddCommand.class},
        footer = {
            "  penstock certs init certs --nodes node-1.example.org,10.0.0.2",
            "  penstock certs add certs node-3 --also 10.0.0.3",
        })
public final class CertsCommand extends CommandWithHelp {
    static void print(PrintWriter out, NodeFiles files) {
        out.printf(
                "tls { certificate = \"%s\", key = \"%s\", authority = \"%s\" }%n",
                files.certificate(), files.key(), files.authority());
    }
}
