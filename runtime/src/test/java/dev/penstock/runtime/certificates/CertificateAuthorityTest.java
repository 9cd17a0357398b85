package dev.penstock.runtime.certificates;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CertificateAuthorityTest {
    @TempDir static Path folder;

    private static Path directory;
    private static NodeFiles node;
    private static NodeFiles stranger;

    @BeforeAll
    static void makeCertificates() {
        directory = folder.resolve("certs");
        CertificateAuthority authority = CertificateAuthority.create(directory);
        node = authority.issue("node-1.example.org", List.of("10.0.0.5", "fd00::5"), 30);
        stranger =
                CertificateAuthority.create(folder.resolve("other"))
                        .issue("localhost", List.of(), 30);
    }

    @Test
    void aNodeIsKnownByAllItsNamesAndByNoOther() {
        NodeCertificate certificate = NodeCertificate.read(node);

        assertThat(certificate.problemsAt("node-1.example.org")).isEmpty();
        assertThat(certificate.problemsAt("10.0.0.5")).isEmpty();
        assertThat(certificate.problemsAt("fd00:0:0:0:0:0:0:5")).isEmpty();
        assertThat(certificate.problemsAt("10.0.0.6"))
                .singleElement()
                .asString()
                .contains("node-1.example.org", "10.0.0.5", "others reach this node as 10.0.0.6");
    }

    @Test
    void aStarStandsForAnyFirstLabelOfOtherNames() {
        NodeFiles pods =
                CertificateAuthority.open(directory).issue("pods", List.of("*.pod.cluster"), 30);
        NodeCertificate certificate = NodeCertificate.read(pods);

        assertThat(certificate.problemsAt("10-0-0-5.pod.cluster")).isEmpty();
        assertThat(certificate.problemsAt("a.b.pod.cluster")).hasSize(1);
        assertThat(certificate.problemsAt("pod.cluster")).hasSize(1);
    }

    @Test
    void theLoopbackHasAllItsNames() {
        NodeCertificate certificate = NodeCertificate.read(stranger);

        for (String name : List.of("localhost", "127.0.0.1", "::1")) {
            assertThat(certificate.problemsAt(name)).as(name).isEmpty();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"rw-r--r--", "rw--w----", "rw----rw-"})
    void aKeyThatOtherUsersCouldReadOrReplaceIsRefused(String permissions) throws IOException {
        Path key = Files.copy(node.key(), folder.resolve("open" + permissions + ".key"));
        Files.setPosixFilePermissions(key, PosixFilePermissions.fromString(permissions));
        var open = new NodeFiles(node.certificate(), key, node.authority());

        assertThatThrownBy(() -> NodeCertificate.read(open))
                .isInstanceOf(CertificatesException.class)
                .hasMessageContaining("" + key)
                .hasMessageContaining("got permissions " + permissions)
                .hasMessageContaining("chmod 600");
    }

    @Test
    void aKeyThatItsGroupMayReadIsAccepted() throws IOException {
        Path key = Files.copy(node.key(), folder.resolve("group.key"));
        Files.setPosixFilePermissions(key, PosixFilePermissions.fromString("r--r-----"));
        var mounted = new NodeFiles(node.certificate(), key, node.authority());

        assertThat(NodeCertificate.read(mounted).problemsAt("10.0.0.5")).isEmpty();
    }

    @Test
    void aKeyOfAnotherCertificateIsNoticed() {
        var mixed = new NodeFiles(node.certificate(), stranger.key(), node.authority());

        assertThat(NodeCertificate.read(mixed).problemsAt("10.0.0.5"))
                .containsExactly("the key does not belong to the certificate");
    }

    @Test
    void aCertificateOfAnotherAuthorityIsNoticed() {
        var mixed = new NodeFiles(node.certificate(), node.key(), stranger.authority());

        assertThat(NodeCertificate.read(mixed).problemsAt("10.0.0.5"))
                .singleElement()
                .asString()
                .contains("CN=node-1.example.org", "not accepted under this authority");
    }

    @Test
    void onlyTheOwnerReadsAnyFile() throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            assertThat(files)
                    .hasSize(4)
                    .allSatisfy(
                            file ->
                                    assertThat(
                                                    PosixFilePermissions.toString(
                                                            Files.getPosixFilePermissions(file)))
                                            .isEqualTo("rw-------"));
        }
        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(directory)))
                .isEqualTo("rwx------");
    }

    @Test
    void nothingIsEverOverwritten() throws IOException {
        byte[] before = Files.readAllBytes(node.key());

        assertThatThrownBy(() -> CertificateAuthority.create(directory))
                .isInstanceOf(CertificatesException.class)
                .hasMessageContaining("ca.pem")
                .hasMessageContaining("nothing is overwritten");
        assertThatThrownBy(
                        () ->
                                CertificateAuthority.open(directory)
                                        .issue("node-1.example.org", List.of(), 30))
                .isInstanceOf(CertificatesException.class)
                .hasMessageContaining("nothing is overwritten");
        assertThat(node.key()).hasBinaryContent(before);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "ca", "../x", "a b", "-a", "a,dns:evil", "10.0.0.300", "*"})
    void whatIsNoHostGetsNoCertificate(String name) {
        assertThatThrownBy(() -> CertificateAuthority.open(directory).issue(name, List.of(), 30))
                .isInstanceOf(CertificatesException.class)
                .hasMessageContaining("expected host names or addresses")
                .hasMessageContaining(name);
    }

    @Test
    void aDirectoryWithoutAnAuthoritySaysHowToMakeOne() {
        assertThatThrownBy(() -> CertificateAuthority.open(folder.resolve("empty")))
                .hasMessageContaining("penstock certs init");
    }

    @Test
    void filesThatAreNoPemAreNamed() throws IOException {
        Path text = Files.writeString(folder.resolve("text.pem"), "hello");

        assertThatThrownBy(() -> NodeCertificate.read(new NodeFiles(text, node.key(), text)))
                .isInstanceOf(CertificatesException.class)
                .hasMessageContaining("text.pem");
        assertThatThrownBy(
                        () ->
                                NodeCertificate.read(
                                        new NodeFiles(node.certificate(), text, node.authority())))
                .isInstanceOf(CertificatesException.class)
                .hasMessageContaining("text.pem")
                .hasMessageContaining("pkcs8");
    }
}
