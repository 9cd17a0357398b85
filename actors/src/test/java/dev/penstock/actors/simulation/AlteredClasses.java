package dev.penstock.actors.simulation;

import java.io.IOException;
import java.io.InputStream;
import java.io.StringWriter;
import java.lang.reflect.Method;
import java.net.URI;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.jspecify.annotations.Nullable;

/** This module's classes once more, with a mistake planted into the source of one of them. */
public final class AlteredClasses extends ClassLoader {
    private static final String OWN = "dev.penstock.actors.";
    private static final Path SOURCES = Path.of("src/main/java/dev/penstock/actors");
    private static final Path TEST_SOURCES = Path.of("src/test/java/dev/penstock/actors");

    private final Map<String, byte[]> altered = new HashMap<>();

    /**
     * Plants a mistake.
     *
     * @param type of the module's sources, such as {@code rank/RankWork}
     * @param from what stands in it exactly once
     */
    public AlteredClasses(String type, String from, String to) throws IOException {
        super(AlteredClasses.class.getClassLoader());
        Path main = SOURCES.resolve(type + ".java");
        String source =
                Files.readString(Files.exists(main) ? main : TEST_SOURCES.resolve(type + ".java"));
        int at = source.indexOf(from);
        if (at < 0 || source.indexOf(from, at + 1) >= 0) {
            throw new AssertionError(
                    "expected once in %s: %s; the mistake is to follow the code"
                            .formatted(type, from));
        }
        compile(type, source.substring(0, at) + to + source.substring(at + from.length()));
    }

    /** Returns what a test's static method of this name finds where the mistake is. */
    public Optional<?> find(Class<?> test, String method, Object... arguments)
            throws ReflectiveOperationException {
        Method found =
                Arrays.stream(loadClass(test.getName()).getDeclaredMethods())
                        .filter(each -> each.getName().equals(method))
                        .findFirst()
                        .orElseThrow();
        found.setAccessible(true);
        return (Optional<?>) Objects.requireNonNull(found.invoke(null, arguments));
    }

    private void compile(String type, String source) throws IOException {
        JavaCompiler compiler = Objects.requireNonNull(ToolProvider.getSystemJavaCompiler());
        Path classes = Files.createTempDirectory("altered-");
        try (var files = compiler.getStandardFileManager(null, null, null)) {
            var said = new StringWriter();
            boolean compiled =
                    compiler.getTask(
                                    said,
                                    files,
                                    null,
                                    List.of(
                                            "-proc:none",
                                            "-nowarn",
                                            "-cp",
                                            classPath(),
                                            "-d",
                                            classes.toString()),
                                    null,
                                    List.of(new Text(type, source)))
                            .call();
            if (!compiled) {
                throw new AssertionError(said);
            }
            Files.walkFileTree(classes, new Taker(classes));
        }
    }

    /** Where Maven hides it from the system's properties, it tells it in one of its own. */
    private static String classPath() {
        return System.getProperty(
                "surefire.test.class.path", System.getProperty("java.class.path"));
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        synchronized (getClassLoadingLock(name)) {
            Class<?> loaded = findLoadedClass(name);
            if (loaded == null && name.startsWith(OWN)) {
                byte[] bytes = bytes(name);
                loaded = defineClass(name, bytes, 0, bytes.length);
            }
            return loaded == null ? super.loadClass(name, resolve) : loaded;
        }
    }

    private byte[] bytes(String name) throws ClassNotFoundException {
        byte[] changed = altered.get(name);
        if (changed != null) {
            return changed;
        }
        String file = name.replace('.', '/') + ".class";
        try (InputStream in = getParent().getResourceAsStream(file)) {
            if (in == null) {
                throw new ClassNotFoundException(name);
            }
            return in.readAllBytes();
        } catch (IOException e) {
            throw new ClassNotFoundException(name, e);
        }
    }

    private static final class Text extends SimpleJavaFileObject {
        private final String source;

        Text(String type, String source) {
            super(URI.create("string:///" + type + ".java"), JavaFileObject.Kind.SOURCE);
            this.source = source;
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return source;
        }
    }

    /** Takes the compiled classes out of their folder, and the folder away. */
    private final class Taker extends SimpleFileVisitor<Path> {
        private final Path root;

        Taker(Path root) {
            this.root = root;
        }

        @Override
        public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
                throws IOException {
            String name = root.relativize(file).toString().replace('/', '.');
            altered.put(
                    name.substring(0, name.length() - ".class".length()), Files.readAllBytes(file));
            Files.delete(file);
            return FileVisitResult.CONTINUE;
        }

        @Override
        public FileVisitResult postVisitDirectory(Path folder, @Nullable IOException failure)
                throws IOException {
            Files.delete(folder);
            return FileVisitResult.CONTINUE;
        }
    }
}
