package dev.penstock.runtime.certificates;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.ECGenParameterSpec;
import java.util.HexFormat;

/**
 * A key and a certificate that it signed itself (RFC 5280, version 1): it vouches for no name, only
 * for the key. The JDK reads certificates and makes none, except in keytool, a process of its own.
 *
 * @param certificate does not expire
 */
record SelfSigned(PrivateKey key, X509Certificate certificate) {
    private static final int INTEGER = 0x02;
    private static final int BIT_STRING = 0x03;
    private static final int UTF8_STRING = 0x0c;
    private static final int TIME = 0x18;
    private static final int SEQUENCE = 0x30;
    private static final int SET = 0x31;

    /** Object identifiers with their tags and lengths. */
    private static final byte[] ECDSA_WITH_SHA256 = HexFormat.of().parseHex("06082a8648ce3d040302");

    private static final byte[] COMMON_NAME = HexFormat.of().parseHex("0603550403");

    /** Makes a pair that nobody has had before. */
    static SelfSigned make(String name) {
        try {
            KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
            generator.initialize(new ECGenParameterSpec("secp256r1"));
            KeyPair pair = generator.generateKeyPair();
            byte[] algorithm = der(SEQUENCE, ECDSA_WITH_SHA256);
            byte[] commonName =
                    der(SEQUENCE, COMMON_NAME, der(UTF8_STRING, name.getBytes(US_ASCII)));
            byte[] names = der(SEQUENCE, der(SET, commonName));
            byte[] validity =
                    der(
                            SEQUENCE,
                            der(TIME, "20000101000000Z".getBytes(US_ASCII)),
                            der(TIME, "99991231235959Z".getBytes(US_ASCII)));
            byte[] content =
                    der(
                            SEQUENCE,
                            der(INTEGER, new byte[] {1}),
                            algorithm,
                            names,
                            validity,
                            names,
                            pair.getPublic().getEncoded());
            Signature signature = Signature.getInstance("SHA256withECDSA");
            signature.initSign(pair.getPrivate());
            signature.update(content);
            byte[] signed =
                    der(
                            SEQUENCE,
                            content,
                            algorithm,
                            der(BIT_STRING, new byte[] {0}, signature.sign()));
            return new SelfSigned(
                    pair.getPrivate(),
                    (X509Certificate)
                            CertificateFactory.getInstance("X.509")
                                    .generateCertificate(new ByteArrayInputStream(signed)));
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("every JDK has ECDSA over P-256", e);
        }
    }

    /** Tag, length and content (X.690, 8.1). */
    private static byte[] der(int tag, byte[]... parts) {
        var content = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            content.writeBytes(part);
        }
        var all = new ByteArrayOutputStream();
        all.write(tag);
        int length = content.size();
        if (length > 0xff) {
            all.write(0x82);
            all.write(length >> 8);
        } else if (length > 0x7f) {
            all.write(0x81);
        }
        all.write(length);
        all.writeBytes(content.toByteArray());
        return all.toByteArray();
    }
}
