package dev.penstock.runtime.cli.cluster;

import dev.penstock.runtime.certificates.CertificateAuthority;
import dev.penstock.runtime.certificates.CertificatesException;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.config.reading.BadInputException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Founds an authority and makes its first certificates. */
@Command(
        name = "init",
        description =
                "Makes an authority and a certificate for each node. Overwrites nothing; all files are readable by their owner alone.",
        footer = "  penstock certs init certs --nodes node-1.example.org,10.0.0.2,127.0.0.1")
final class CertsInitCommand extends PenstockCommand {
    static final String DAYS = "365";

    @Parameters(index = "0", paramLabel = "DIR", description = "Where to; made if missing.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path directory;

    @Option(
            names = "--nodes",
            paramLabel = "HOST",
            split = ",",
            description =
                    "Names or addresses under which nodes reach each other, one certificate each; 127.0.0.1 unless given.")
    private List<String> nodes = new ArrayList<>();

    @Option(
            names = "--days",
            paramLabel = "DAYS",
            defaultValue = DAYS,
            description = "How long the nodes' certificates are valid (${DEFAULT-VALUE}).")
    private int days;

    @Override
    public Integer call() {
        List<String> wanted =
                nodes.isEmpty() ? List.of("127.0.0.1") : nodes.stream().distinct().toList();
        requireDays(days);
        try {
            CertificateAuthority.requireNames(wanted);
            CertificateAuthority authority = CertificateAuthority.create(directory);
            for (String node : wanted) {
                CertsCommand.print(out(), authority.issue(node, List.of(), days));
            }
        } catch (CertificatesException e) {
            throw new BadInputException(String.valueOf(e.getMessage()));
        }
        out().printf(
                        "each node gets its two files and ca.pem; %s signs: keep it off the nodes%n",
                        directory.resolve("ca.key"));
        return ExitCode.OK;
    }

    static void requireDays(int days) {
        if (days < 1 || days > 3650) {
            throw new BadInputException("--days: expected 1 to 3650, got " + days);
        }
    }
}
