package dev.penstock.runtime.certificates;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * The JDK's own keytool, for which the JDK has no interface, as a process. Its class is in {@code
 * java.base}, so it is run by the {@code java} that runs this program: a runtime made by jlink has
 * it, too, unless it was made with {@code --strip-native-commands} and has no {@code java} at all.
 */
final class Keytool {
    private static final String MAIN = "java.base/sun.security.tools.keytool.Main";
    private static final String PASSWORD = "PENSTOCK_KEYSTORE";
    private static final long LIMIT_SECONDS = 120;

    private final Path keystore;
    private final String password;

    /**
     * @param keystore PKCS #12; created if it does not exist
     * @param password of it, which no other user sees: it is passed through the environment
     */
    Keytool(Path keystore, String password) {
        this.keystore = keystore;
        this.password = password;
    }

    /** Generates a key pair under an alias, with its certificate. */
    void generate(String alias, List<String> arguments) {
        List<String> all = new ArrayList<>();
        all.addAll(List.of("-genkeypair", "-alias", alias));
        all.addAll(List.of("-keyalg", "EC", "-groupname", "secp256r1"));
        all.addAll(arguments);
        run(all);
    }

    private void run(List<String> arguments) {
        Path java = Path.of(System.getProperty("java.home"), "bin", "java");
        if (!Files.isExecutable(java)) {
            throw new CertificatesException(
                    "this Java runtime does not have %s; make certificates with a JDK and copy them"
                            .formatted(java));
        }
        List<String> command = new ArrayList<>();
        command.addAll(List.of(java.toString(), "-XX:TieredStopAtLevel=1", "-Duser.language=en"));
        command.addAll(List.of("-m", MAIN));
        command.addAll(arguments);
        command.addAll(List.of("-keystore", keystore.toString(), "-storetype", "PKCS12"));
        command.addAll(List.of("-storepass:env", PASSWORD));
        // it prints little, so its output would fit a pipe, but a file needs no reader
        Path said = keystore.resolveSibling("keytool.out");
        ProcessBuilder builder =
                new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(said.toFile());
        builder.environment().put(PASSWORD, password);
        try {
            Process process = builder.start();
            if (!process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                throw new CertificatesException(
                        "keytool did not finish within " + LIMIT_SECONDS + " s");
            }
            if (process.exitValue() != 0) {
                throw new CertificatesException(
                        "keytool failed: " + Files.readString(said, UTF_8).strip());
            }
        } catch (IOException e) {
            throw new CertificatesException("cannot run keytool: " + e.getMessage(), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CertificatesException("interrupted while keytool ran", e);
        }
    }
}
