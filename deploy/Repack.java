import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.LocalDateTime;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;

/**
 * Rewrites the jars of a folder: without native libraries that Penstock does not load, stored
 * without compression (the archive around them is compressed, and classes load faster), and with
 * the same bytes wherever and whenever this is done. Licences and notices inside the jars are
 * also written out as files.
 *
 * <p>{@code java deploy/Repack.java FOLDER LICENCES}
 */
final class Repack {
    private static final LocalDateTime AGE = LocalDateTime.of(2026, 1, 1, 0, 0);

    private static final Pattern LICENCE =
            Pattern.compile("(META-INF/)?(LICEN[CS]E|NOTICE|COPYING|COPYRIGHT)[^/]*");

    /** The entries to keep of jars with native libraries, by the beginning of the jar's name. */
    private static final Map<String, Predicate<String>> NATIVES =
            Map.of(
                    // without headers and the bindings of another API
                    "dnnl-",
                            name ->
                                    name.endsWith("/libdnnl.so.3")
                                            || name.endsWith("/libgomp.so.1"),
                    // only the driver API is used
                    "jcuda-natives-", name -> name.startsWith("lib/libJCudaDriver"),
                    "jline-native-",
                            name ->
                                    !name.matches("org/jline/nativ/.*/.*")
                                            || name.contains("/Linux/x86_64/"),
                    // without its models and the classes that would ask the network
                    "tokenizers-",
                            name ->
                                    name.startsWith("META-INF/MANIFEST")
                                            || name.startsWith(
                                                    "ai/djl/huggingface/tokenizers/jni/")
                                            || name.startsWith("native/lib/linux-x86_64/"));

    public static void main(String[] arguments) throws IOException {
        Path licences = Path.of(arguments[1]);
        try (Stream<Path> files = Files.list(Path.of(arguments[0]))) {
            for (Path jar :
                    files.filter(file -> file.toString().endsWith(".jar")).sorted().toList()) {
                repack(jar, licences);
            }
        }
    }

    private static void repack(Path jar, Path licences) throws IOException {
        Path whole = jar.resolveSibling(jar.getFileName() + ".part");
        try (ZipFile from = new ZipFile(jar.toFile());
                ZipOutputStream to = new ZipOutputStream(Files.newOutputStream(whole))) {
            to.setMethod(ZipOutputStream.STORED);
            for (ZipEntry entry : kept(from, jar.getFileName().toString())) {
                byte[] content = content(from, entry);
                to.putNextEntry(stored(entry.getName(), content));
                to.write(content);
                if (LICENCE.matcher(entry.getName()).matches()) {
                    Path folder =
                            licences.resolve(
                                    jar.getFileName().toString().replaceAll("\\.jar$", ""));
                    Files.createDirectories(folder);
                    Files.write(folder.resolve(Path.of(entry.getName()).getFileName()), content);
                }
            }
        }
        Files.move(whole, jar, StandardCopyOption.REPLACE_EXISTING);
    }

    /**
     * Returns the entries to keep: the manifest first, as stream readers expect, the others
     * sorted by name.
     */
    private static List<? extends ZipEntry> kept(ZipFile jar, String name) {
        Predicate<String> keeps =
                NATIVES.entrySet().stream()
                        .filter(rule -> name.startsWith(rule.getKey()))
                        .map(Map.Entry::getValue)
                        .findFirst()
                        .orElse(_ -> true);
        return jar.stream()
                .filter(
                        entry ->
                                entry.isDirectory()
                                        || entry.getName().startsWith("META-INF/")
                                        || keeps.test(entry.getName()))
                .sorted(
                        Comparator.comparing(
                                        (ZipEntry entry) ->
                                                !entry.getName().equals("META-INF/MANIFEST.MF"))
                                .thenComparing(ZipEntry::getName))
                .toList();
    }

    private static ZipEntry stored(String name, byte[] content) {
        CRC32 crc = new CRC32();
        crc.update(content);
        ZipEntry entry = new ZipEntry(name);
        entry.setSize(content.length);
        entry.setCompressedSize(content.length);
        entry.setCrc(crc.getValue());
        entry.setTimeLocal(AGE);
        return entry;
    }

    private static byte[] content(ZipFile jar, ZipEntry entry) {
        try (InputStream in = jar.getInputStream(entry)) {
            return in.readAllBytes();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
