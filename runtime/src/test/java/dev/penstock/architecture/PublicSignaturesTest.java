package dev.penstock.architecture;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.module.ModuleDescriptor;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Holds what is public, so that nothing of it changes by accident. {@code docs/library.md} says
 * what a version promises; what the lines of {@code public-signatures.txt} say is what it promises.
 */
class PublicSignaturesTest {
    private static final Path PROMISED = Path.of("src/test/resources/public-signatures.txt");

    /** Writes the file anew instead of comparing with it. */
    private static final String RENEW = "signatures.renew";

    private static final Path SCHEDULES = Path.of("../schedules/target/classes");
    private static final Path SCHEDULES_JUNIT = Path.of("../schedules-junit/target/classes");

    @Test
    void thePublicSignaturesAreThosePromised() throws IOException {
        List<String> now = new ArrayList<>();
        now.addAll(PublicSignatures.of(Path.of("target/classes"), List.of("dev.penstock")));
        now.addAll(PublicSignatures.of(SCHEDULES_JUNIT, exported(SCHEDULES_JUNIT)));
        now.addAll(PublicSignatures.of(SCHEDULES, exported(SCHEDULES)));

        if (Boolean.getBoolean(RENEW)) {
            Files.write(PROMISED, now);
        }
        assertThat(now)
                .as(
                        "what the packages in docs/library.md offer; a line that is gone breaks"
                                + " programs: keep it, or raise the major version. Then renew the"
                                + " file: mvn -pl runtime -am test -Dtest=PublicSignaturesTest"
                                + " -Dsurefire.failIfNoSpecifiedTests=false -D%s=true",
                        RENEW)
                .containsExactlyElementsOf(Files.readAllLines(PROMISED));
    }

    @Test
    void linesNameWhatOthersSeeAndNothingElse() throws IOException {
        List<String> lines =
                PublicSignatures.of(
                        Path.of("target/test-classes"),
                        List.of("dev.penstock.architecture.signatures"));

        String type = "dev.penstock.architecture.signatures.Offer";
        assertThat(lines)
                .containsExactly(
                        type + " final class of AutoCloseable",
                        type + " static @Nullable String first(List<String>, int[])",
                        type + " void close()",
                        type + "$Part String name()",
                        type + "$Part data",
                        type + "$Part new(String)",
                        type + "$Part record(String name)");
    }

    @Test
    void schedulesNeedNothingButTheJdk() throws IOException {
        assertThat(descriptor(SCHEDULES).requires())
                .filteredOn(
                        needed ->
                                !needed.modifiers()
                                        .contains(ModuleDescriptor.Requires.Modifier.STATIC))
                .extracting(ModuleDescriptor.Requires::name)
                .containsExactly("java.base");
    }

    /** Those that the module descriptor exports. */
    private static List<String> exported(Path classes) throws IOException {
        return descriptor(classes).exports().stream()
                .map(ModuleDescriptor.Exports::source)
                .sorted()
                .toList();
    }

    private static ModuleDescriptor descriptor(Path classes) throws IOException {
        try (var in = Files.newInputStream(classes.resolve("module-info.class"))) {
            return ModuleDescriptor.read(in);
        }
    }
}
