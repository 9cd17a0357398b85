package dev.penstock.architecture;

import java.io.IOException;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What the public types of some packages offer to code outside of them, as lines of text: one for
 * each type and below it one for each member that others can use. Lines are sorted, so that a
 * change of order in a source is none here.
 */
final class PublicSignatures {
    private static final Set<String> OF_EVERY_OBJECT = Set.of("equals", "hashCode", "toString");

    private final Set<String> lines = new TreeSet<>();

    private PublicSignatures() {}

    /**
     * Returns the lines of a module's packages.
     *
     * @param classes the folder of its class files
     */
    static List<String> of(Path classes, List<String> packages) throws IOException {
        var signatures = new PublicSignatures();
        try (var loader =
                new URLClassLoader(
                        new URL[] {classes.toUri().toURL()},
                        PublicSignatures.class.getClassLoader())) {
            signatures.addAll(classes, packages, loader);
        }
        return List.copyOf(signatures.lines);
    }

    private void addAll(Path classes, List<String> packages, ClassLoader loader)
            throws IOException {
        for (String name : packages) {
            try (Stream<Path> files = Files.list(classes.resolve(name.replace('.', '/')))) {
                files.map(file -> String.valueOf(file.getFileName()))
                        .filter(file -> file.endsWith(".class"))
                        .filter(file -> !file.equals("package-info.class"))
                        .map(file -> name + "." + file.replace(".class", ""))
                        .map(type -> load(type, loader))
                        .filter(PublicSignatures::isSeen)
                        .forEach(this::add);
            }
        }
    }

    private static Class<?> load(String name, ClassLoader loader) {
        try {
            return Class.forName(name, false, loader);
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Whether it and all types that it is declared in are public or, in a class, protected. */
    private static boolean isSeen(Class<?> type) {
        boolean here = isSeen(type.getModifiers()) && !type.isAnonymousClass();
        return here && (type.getDeclaringClass() == null || isSeen(type.getDeclaringClass()));
    }

    private static boolean isSeen(int modifiers) {
        return Modifier.isPublic(modifiers) || Modifier.isProtected(modifiers);
    }

    private void add(Class<?> type) {
        add(type, header(type));
        if (type.isRecord()) {
            String components =
                    Arrays.stream(type.getRecordComponents())
                            .map(PublicSignatures::component)
                            .collect(Collectors.joining(", "));
            add(type, "record(%s)".formatted(components));
        }
        for (Field field : type.getDeclaredFields()) {
            member(type, field.getModifiers(), field.isSynthetic(), () -> text(field));
        }
        for (Constructor<?> made : type.getDeclaredConstructors()) {
            member(type, made.getModifiers(), made.isSynthetic(), () -> "new" + parameters(made));
        }
        for (Method method : type.getDeclaredMethods()) {
            boolean ofEvery = OF_EVERY_OBJECT.contains(method.getName());
            member(
                    type,
                    method.getModifiers(),
                    method.isSynthetic() || ofEvery,
                    () -> text(method));
        }
    }

    /** A member's words. */
    private interface Words {
        String get();
    }

    private void member(Class<?> type, int modifiers, boolean passedOver, Words words) {
        if (isSeen(modifiers) && !passedOver) {
            add(type, words.get());
        }
    }

    /** The packages that everybody knows are left out. */
    private void add(Class<?> type, String words) {
        lines.add(type.getName() + " " + words.replaceAll("java\\.(lang|util)\\.(?=[A-Z])", ""));
    }

    private static String header(Class<?> type) {
        List<String> words = new ArrayList<>();
        int modifiers = type.getModifiers();
        if (type.isSealed()) {
            words.add("sealed");
        } else if (Modifier.isFinal(modifiers) && !type.isEnum() && !type.isRecord()) {
            words.add("final");
        }
        if (Modifier.isAbstract(modifiers) && !type.isInterface()) {
            words.add("abstract");
        }
        words.add(
                type.isAnnotation()
                        ? "@interface"
                        : type.isInterface()
                                ? "interface"
                                : type.isEnum() ? "enum" : type.isRecord() ? "data" : "class");
        Class<?> parent = type.getSuperclass();
        if (parent != null && parent != Object.class && !type.isEnum() && !type.isRecord()) {
            words.add("extends " + parent.getName());
        }
        if (type.getInterfaces().length > 0 && !type.isAnnotation()) {
            words.add(
                    Arrays.stream(type.getGenericInterfaces())
                            .map(Type::getTypeName)
                            .sorted()
                            .collect(Collectors.joining(", ", "of ", "")));
        }
        return String.join(" ", words);
    }

    private static String component(RecordComponent component) {
        return nullable(component.getAnnotatedType())
                + "%s %s".formatted(component.getGenericType().getTypeName(), component.getName());
    }

    private static String text(Field field) {
        return "%s%s%s %s"
                .formatted(
                        modifiers(field.getModifiers()),
                        nullable(field.getAnnotatedType()),
                        field.getGenericType().getTypeName(),
                        field.getName());
    }

    private static String text(Method method) {
        String words = (method.isDefault() ? "default " : "") + modifiers(method.getModifiers());
        return "%s%s%s %s%s"
                .formatted(
                        words,
                        nullable(method.getAnnotatedReturnType()),
                        method.getGenericReturnType().getTypeName(),
                        method.getName(),
                        parameters(method));
    }

    private static String modifiers(int modifiers) {
        return (Modifier.isProtected(modifiers) ? "protected " : "")
                + (Modifier.isStatic(modifiers) ? "static " : "")
                + (Modifier.isAbstract(modifiers) ? "abstract " : "");
    }

    private static String parameters(Executable executable) {
        String thrown =
                Arrays.stream(executable.getGenericExceptionTypes())
                        .map(Type::getTypeName)
                        .sorted()
                        .collect(Collectors.joining(", "));
        return Arrays.stream(executable.getParameters())
                        .map(PublicSignatures::parameter)
                        .collect(Collectors.joining(", ", "(", ")"))
                + (thrown.isEmpty() ? "" : " throws " + thrown);
    }

    private static String parameter(Parameter parameter) {
        return nullable(parameter.getAnnotatedType())
                + parameter.getParameterizedType().getTypeName();
    }

    private static String nullable(AnnotatedElement type) {
        boolean marked =
                Arrays.stream(type.getAnnotations())
                        .anyMatch(a -> a.annotationType().getSimpleName().equals("Nullable"));
        return marked ? "@Nullable " : "";
    }
}
