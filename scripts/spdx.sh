#!/bin/sh
# The list of what is inside, with licences and checksums, as SPDX 2.3 (tag-value): spdx.sh FOLDER NAME VERSION >FILE
# FOLDER is what scripts/stage.sh made. Files are listed first, then the packages that they come from.
set -eu
cd "$(dirname "$0")/.."
folder=$1 name=$2 version=$3
# shellcheck source=scripts/epoch.sh
. scripts/epoch.sh
table=$folder/share/doc/kith/licences/libraries.tsv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$folder" && find . -type f ! -name '*.spdx' | sort | tr '\n' '\0' | xargs -0 sha1sum) >"$work/sha1"
(cd "$folder" && find . -type f ! -name '*.spdx' | sort | tr '\n' '\0' | xargs -0 sha256sum) >"$work/sha256"
# A document is named by what it says: a version 8 UUID of its checksums.
all=$(sha256sum <"$work/sha256")
uuid=$(printf '%s' "$all" | sed -E 's/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*/\1-\2-8\3-8\4-\5/')
cat <<END
SPDXVersion: SPDX-2.3
DataLicense: CC0-1.0
SPDXID: SPDXRef-DOCUMENT
DocumentName: $name-$version
DocumentNamespace: urn:uuid:$uuid
Creator: Tool: scripts/spdx.sh of kith $version
Created: $(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
END
paste -d ' ' "$work/sha1" "$work/sha256" | awk -v table="$table" -v licences=scripts/licences.tsv -v name="$name" -v version="$version" '
    function id(text) { gsub(/[^A-Za-z0-9.-]/, "-", text); return text }
    function licence_of(library,   base) {
        base = library; sub(/\.so.*/, "", base); sub(/-kith$/, "", base)
        return base in licence ? licence[base] : "NOASSERTION"
    }
    BEGIN {
        FS = "\t"
        while ((getline line < licences) > 0) if (line !~ /^#/) { split(line, w, "\t"); licence[w[1]] = w[2] }
        while ((getline line < table) > 0) {
            split(line, w, "\t")
            package_of[w[1]] = w[2]; version_of[w[2]] = w[3]; spdx_of[w[2]] = licence_of(w[1])
            if (!(w[2] in seen)) { seen[w[2]] = 1; order[++n] = w[2] }
        }
        FS = " "
    }
    {
        # SHA1  ./PATH SHA256  ./PATH; a path may hold blanks.
        sha1 = $1
        rest = substr($0, length(sha1) + 3)
        half = (length(rest) - 67) / 2
        path = substr(rest, 1, half)
        sha256 = substr(rest, half + 2, 64)
        base = path; sub(/.*\//, "", base)
        file = "SPDXRef-File-" id(substr(path, 3))
        is_text = path ~ /\/licences\/[^\/]*\.txt$/
        from = base in package_of ? package_of[base] : ""
        said = from != "" ? spdx_of[from] : is_text ? "NOASSERTION" : "Apache-2.0"
        print "\nFileName: " path "\nSPDXID: " file "\nFileChecksum: SHA1: " sha1 "\nFileChecksum: SHA256: " sha256
        print "LicenseConcluded: " said "\nLicenseInfoInFile: NOASSERTION\nFileCopyrightText: NOASSERTION"
        relation[++m] = "Relationship: SPDXRef-Package-" (from != "" ? id(from) : "kith") " CONTAINS " file
    }
    END {
        print "\nPackageName: kith\nSPDXID: SPDXRef-Package-kith\nPackageVersion: " version "\nPackageDownloadLocation: NOASSERTION"
        print "FilesAnalyzed: false\nPackageLicenseConcluded: Apache-2.0\nPackageLicenseDeclared: Apache-2.0\nPackageCopyrightText: NOASSERTION"
        for (i = 1; i <= n; i++) {
            print "\nPackageName: " order[i] "\nSPDXID: SPDXRef-Package-" id(order[i]) "\nPackageVersion: " version_of[order[i]]
            print "PackageDownloadLocation: NOASSERTION\nPackageSourceInfo: Debian, package " order[i] " " version_of[order[i]]
            print "FilesAnalyzed: false\nPackageLicenseConcluded: " spdx_of[order[i]] "\nPackageLicenseDeclared: " spdx_of[order[i]]
            print "PackageCopyrightText: NOASSERTION"
        }
        print "\nRelationship: SPDXRef-DOCUMENT DESCRIBES SPDXRef-Package-kith"
        for (i = 1; i <= n; i++) print "Relationship: SPDXRef-Package-kith DEPENDS_ON SPDXRef-Package-" id(order[i])
        for (i = 1; i <= m; i++) print relation[i]
    }'
