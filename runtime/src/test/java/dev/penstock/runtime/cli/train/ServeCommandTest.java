package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.SavedRun;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is refused before anything is loaded. */
class ServeCommandTest {
    @TempDir private Path run;

    @BeforeEach
    void saveARun() {
        SavedRun.write(run, 100);
    }

    private void refused(String part, String... options) {
        String[] arguments = new String[options.length + 2];
        arguments[0] = "serve";
        arguments[1] = run.toString();
        System.arraycopy(options, 0, arguments, 2, options.length);
        Cli serve = Cli.run(arguments);

        assertThat(serve.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(serve.err()).contains(part).doesNotContain("\tat ");
        assertThat(serve.out()).isEmpty();
    }

    @Test
    void anAddressThatOthersReachNeedsAKey() {
        refused(
                "--host: expected a key for an address that other machines reach, got 0.0.0.0 and"
                        + " none; give --api-key-file, or --insecure",
                "--host=0.0.0.0");
    }

    @Test
    void aKeyThatIsNoneIsRefusedWithoutShowingIt() throws IOException {
        Path key = Files.writeString(run.resolve("key.txt"), "se cret");

        Cli serve = Cli.run("serve", run.toString(), "--api-key-file=" + key);

        assertThat(serve.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(serve.err())
                .contains("--api-key-file: expected a key of 1 to 1000 visible ASCII characters")
                .doesNotContain("cret");
        refused("--api-key-file: expected a file that can be read", "--api-key-file=/no/such");
    }

    @Test
    void allThatIsWrongIsSaidAtOnce() {
        refused(
                "6 problems",
                "--port=70000",
                "--together=0",
                "--waiting=-1",
                "--max-length=1",
                "--chat-template=x",
                "--stages=9");
    }

    @Test
    void roomForLessThanATextIsRefused() {
        refused(
                "--cache-tokens: expected room for a text of --max-length, 50 tokens or more, got"
                        + " 40; give more, or --max-length=40",
                "--max-length=50",
                "--cache-tokens=40");
    }

    @Test
    void whatIsWrongWithAClusterIsSaidBeforeItIsAsked() {
        refused(
                "2 problems",
                "--cluster=127.0.0.1:1",
                "--port=0",
                "--stages=2"); // a layer alone has one rank
        refused("--cluster: expected a seed node", "--ranks-per-node=1");
        refused("127.0.0.1:1 does not answer", "--cluster=127.0.0.1:1");
    }

    @Test
    void aModelThatIsNotThereIsSaid() {
        Cli serve = Cli.run("serve", run.resolve("nothing").toString());

        assertThat(serve.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(serve.err()).contains("expected a run, a checkpoint or weights");
    }

    @Test
    void aPortThatIsTakenIsSaid() throws IOException {
        try (var taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            refused(
                    "--port: expected a port of 127.0.0.1 that is free, got "
                            + taken.getLocalPort(),
                    "--port=" + taken.getLocalPort());
        }
    }
}
