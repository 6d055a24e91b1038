# Stands in the package of the policies that ask for it.
package quartermaster.roles

user_has_role[user] contains role if {
	some user, roles in data.roles
	some role in roles
}
