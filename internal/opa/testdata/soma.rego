package soma.tools

default allow = false

allow {
    input.action == "execute"
    tool_enabled[input.tool_name]
    user_has_role[input.user_id]["tool_user"]
}

tool_enabled[name] {
    data.tools[name].enabled == true
}
