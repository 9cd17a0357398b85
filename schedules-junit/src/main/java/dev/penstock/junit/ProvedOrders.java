package dev.penstock.junit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.PathMatcher;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.junit.jupiter.api.extension.TestTemplateInvocationContextProvider;
import org.junit.platform.commons.support.AnnotationSupport;

/** Makes a test of each file that a {@link ProvedOrder} names. Public for JUnit, which makes it. */
public final class ProvedOrders implements TestTemplateInvocationContextProvider {
    /** For JUnit. */
    public ProvedOrders() {}

    @Override
    public boolean supportsTestTemplate(ExtensionContext context) {
        return AnnotationSupport.isAnnotated(context.getTestMethod(), ProvedOrder.class);
    }

    @Override
    public Stream<TestTemplateInvocationContext> provideTestTemplateInvocationContexts(
            ExtensionContext context) {
        ProvedOrder asked =
                AnnotationSupport.findAnnotation(context.getTestMethod(), ProvedOrder.class)
                        .orElseThrow();
        return files(asked.value()).stream().map(file -> new OrderProof(file, asked));
    }

    /** In the order of their names. A name without a match is a test that fails. */
    private static List<Path> files(String name) {
        if (!name.matches(".*[*?\\[{].*")) {
            return List.of(Path.of(name));
        }
        int folderEnd = name.substring(0, firstOf(name)).lastIndexOf('/');
        Path folder = Path.of(folderEnd < 0 ? "" : name.substring(0, folderEnd));
        PathMatcher glob = FileSystems.getDefault().getPathMatcher("glob:" + name);
        try (Stream<Path> walk = Files.walk(folder)) {
            List<Path> found =
                    walk.filter(glob::matches).filter(Files::isRegularFile).sorted().toList();
            return found.isEmpty() ? List.of(Path.of(name)) : found;
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read " + folder, e);
        }
    }

    private static int firstOf(String glob) {
        int at = 0;
        while ("*?[{".indexOf(glob.charAt(at)) < 0) {
            at++;
        }
        return at;
    }
}
