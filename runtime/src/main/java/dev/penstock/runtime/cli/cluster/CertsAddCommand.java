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

/** Makes one more certificate. */
@Command(
        name = "add",
        description = "Makes a certificate for one more node, under the directory's authority.",
        footer = "  penstock certs add certs node-3 --also 10.0.0.3,node-3.example.org")
final class CertsAddCommand extends PenstockCommand {
    @Parameters(
            index = "0",
            paramLabel = "DIR",
            description = "Where penstock certs init made the authority.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path directory;

    @Parameters(
            index = "1",
            paramLabel = "HOST",
            description = "Name or address of the node; its files are called so.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private String node;

    @Option(
            names = "--also",
            paramLabel = "HOST",
            split = ",",
            description =
                    "Other names or addresses under which it is reached; *.example.org is each name there.")
    private List<String> otherNames = new ArrayList<>();

    @Option(
            names = "--days",
            paramLabel = "DAYS",
            defaultValue = CertsInitCommand.DAYS,
            description = "How long the certificate is valid (${DEFAULT-VALUE}).")
    private int days;

    @Override
    public Integer call() {
        CertsInitCommand.requireDays(days);
        try {
            CertificateAuthority authority = CertificateAuthority.open(directory);
            CertsCommand.print(out(), authority.issue(node, otherNames, days));
        } catch (CertificatesException e) {
            throw new BadInputException(String.valueOf(e.getMessage()));
        }
        return ExitCode.OK;
    }
}
