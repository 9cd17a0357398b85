package dev.penstock.cuda.libraries;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.JarURLConnection;
import java.net.URL;
import java.net.URLConnection;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.util.jar.JarEntry;
import java.util.zip.CRC32;
import java.util.zip.CheckedInputStream;

/**
 * Unpacks libraries from the class path into a private directory that later runs use again. Several
 * processes may do so at a time: a file appears under its name only when it is whole.
 */
public final class NativeFiles {
    private final Path base;

    /**
     * @param base where directories are made, such as {@code java.io.tmpdir}
     */
    public NativeFiles(Path base) {
        this.base = base;
    }

    /** What a resource holds, by size and CRC-32. */
    private record Content(long bytes, long crc) {}

    /**
     * The file that holds this resource; unpacked now unless an earlier run did.
     *
     * @param resource absolute name on the class path
     * @throws IOException if there is no such resource or no place to write it to
     */
    public Path unpack(String resource) throws IOException {
        URL url = NativeFiles.class.getResource(resource);
        if (url == null) {
            throw new IOException("there is no " + resource + " on the class path");
        }
        Content content = content(url);
        String name = resource.substring(resource.lastIndexOf('/') + 1);
        Path directory = privateDirectory("%08x-%x".formatted(content.crc, content.bytes));
        Path file = directory.resolve(name);
        if (!Files.exists(file) || Files.size(file) != content.bytes) {
            copy(url, file);
        }
        return file;
    }

    private static void copy(URL url, Path file) throws IOException {
        Path whole = Files.createTempFile(file.getParent(), file.getFileName().toString(), ".part");
        try (InputStream in = url.openStream()) {
            Files.copy(in, whole, StandardCopyOption.REPLACE_EXISTING);
            Files.move(whole, file, StandardCopyOption.ATOMIC_MOVE);
        } finally {
            Files.deleteIfExists(whole);
        }
    }

    /** A jar knows what its entries hold; anything else is read. */
    private static Content content(URL url) throws IOException {
        URLConnection connection = url.openConnection();
        if (connection instanceof JarURLConnection jar) {
            JarEntry entry = jar.getJarEntry();
            return new Content(entry.getSize(), entry.getCrc());
        }
        CRC32 crc = new CRC32();
        try (InputStream in = new CheckedInputStream(connection.getInputStream(), crc)) {
            long bytes = in.transferTo(OutputStream.nullOutputStream());
            return new Content(bytes, crc.getValue());
        }
    }

    /** A directory that only this user can write to, so that nobody can plant a library in it. */
    private Path privateDirectory(String hash) throws IOException {
        String user = System.getProperty("user.name", "nobody").replaceAll("[^A-Za-z0-9_-]", "_");
        Path directory = base.resolve("penstock-natives-" + user + "-" + hash);
        var ownerOnly =
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
        try {
            Files.createDirectory(directory, ownerOnly);
        } catch (FileAlreadyExistsException _) {
            if (!isPrivate(directory)) {
                return Files.createTempDirectory(base, "penstock-natives-", ownerOnly);
            }
        }
        return directory;
    }

    private boolean isPrivate(Path directory) throws IOException {
        return Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)
                && Files.getOwner(directory).equals(currentUser())
                && PosixFilePermissions.toString(Files.getPosixFilePermissions(directory))
                        .equals("rwx------");
    }

    /** Whoever owns what this process makes: the user of a container may have no name. */
    private UserPrincipal currentUser() throws IOException {
        Path own = Files.createTempFile(base, "penstock-owner-", "");
        try {
            return Files.getOwner(own);
        } finally {
            Files.delete(own);
        }
    }
}
